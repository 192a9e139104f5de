"""A stand-in for the object store: serves float tiles by number over HTTP on localhost."""

import http.server
import os
import sys
import time

import numpy as np

BANDWIDTH = float(os.environ.get("STORE_MB_PER_S", "1.6")) * 1e6
FAST = os.environ.get("PLANTED_FIX") == "1"


class Tiles(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def do_GET(self):
        number = int(self.path.rsplit("/", 1)[-1])
        rng = np.random.default_rng(number)
        body = rng.normal(size=(8, 3, 24, 24)).astype(np.float32).tobytes()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        for i in range(0, len(body), 8192):
            self.wfile.write(body[i : i + 8192])
            if not FAST:
                time.sleep(8192 / BANDWIDTH)

    def log_message(self, *args):
        pass


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Tiles)
    print(server.server_port, flush=True)
    parent = os.getppid()
    server.timeout = 1.0
    while os.getppid() == parent:
        server.handle_request()
    sys.exit(0)
