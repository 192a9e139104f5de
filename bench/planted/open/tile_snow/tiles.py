"""Snow-cover tiles behind HTTP, one GET per tile, as the mapping agency offers them (here: a local server of the same manners)."""

import http.client
import http.server
import multiprocessing as mp
import time

import numpy as np

SIDE = 16
CHANNELS = 4


def tile(number):
    rng = np.random.default_rng(number)
    return rng.random((CHANNELS, SIDE, SIDE), dtype=np.float32)


class Agency(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def do_GET(self):
        body = tile(int(self.path.rsplit("/", 1)[1])).tobytes()
        time.sleep(0.001)
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args):
        pass


def _serve(queue):
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Agency)
    queue.put(server.server_address[1])
    server.serve_forever()


def start_agency():
    context = mp.get_context("fork")
    queue = context.Queue()
    process = context.Process(target=_serve, args=(queue,), daemon=True)
    process.start()
    return process, queue.get(timeout=60)


class TileClient:
    def __init__(self, port):
        self.connection = http.client.HTTPConnection("127.0.0.1", port)

    def get(self, number):
        self.connection.request("GET", f"/tiles/{number}")
        reply = self.connection.getresponse().read()
        return np.frombuffer(reply, dtype=np.float32).reshape(CHANNELS, SIDE, SIDE)
