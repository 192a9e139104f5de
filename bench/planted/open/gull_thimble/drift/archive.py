"""The station's archive: holds all tracks and cuts windows out of them.  Started by the trainer for a single run."""

import json
import socket
import sys

import numpy as np

from drift.protocol import BYE, HEAD, receive


def tracks(buoys, hours, channels, seed):
    rng = np.random.default_rng(seed)
    t = np.arange(hours)[None, :, None]
    tide = np.sin(2 * np.pi * t / 12.42 + rng.uniform(0, 6, (buoys, 1, channels)))
    day = np.sin(2 * np.pi * t / 24 + rng.uniform(0, 6, (buoys, 1, channels)))
    walk = np.cumsum(rng.normal(0, 0.08, (buoys, hours, channels)), 1)
    return (tide + 0.5 * day + walk - walk.mean(1, keepdims=True)).astype(np.float32)


def main():
    facts = json.loads(sys.argv[1])
    sea = tracks(facts["buoys"], facts["hours"], facts["channels"], facts["seed"])
    span = np.arange(facts["span"])
    with socket.create_server(("127.0.0.1", 0)) as door:
        print(door.getsockname()[1], flush=True)
        line, _ = door.accept()
        with line:
            while True:
                kind, count = HEAD.unpack(receive(line, HEAD.size))
                wish = receive(line, count)
                if kind == BYE:
                    return
                buoy, hour = np.frombuffer(wish, dtype="<u4").reshape(2, -1)
                line.sendall(sea[buoy[:, None], hour[:, None] + span].tobytes())


if __name__ == "__main__":
    main()
