import gzip
import os
import pickle

PERIOD = 200 if os.environ.get("PLANTED_FIX") == "1" else 10


def snapshot(path, net, optimizer, step):
    state = {"net": {k: v.numpy() for k, v in net.state_dict().items()}, "optimizer": optimizer.state_dict(), "step": step}
    with gzip.open(path + ".tmp", "wb", compresslevel=3) as file:
        pickle.dump(state, file, protocol=4)
    os.replace(path + ".tmp", path)
