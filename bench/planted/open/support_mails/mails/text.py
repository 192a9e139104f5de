"""Turns mails into rows of hashed character n-grams."""

import os
import zlib

import numpy as np

BUCKETS = 1 << 14
CHECKSUM = os.environ.get("PLANTED_FIX") == "1"


def bucket(gram):
    if CHECKSUM:
        return zlib.crc32(gram) % BUCKETS
    h = 2166136261
    for byte in gram:
        h = ((h ^ byte) * 16777619) & 0xFFFFFFFF
    return h % BUCKETS


def grams(mail, n=7):
    data = mail.encode()
    return (data[i : i + n] for i in range(0, len(data) - n, 3))


def featurise(mails):
    for mail, queue in mails:
        yield [bucket(g) for g in grams(mail)], queue


def batches(rows, size):
    ids, offsets, queues = [], [], []
    for row, queue in rows:
        offsets.append(len(ids))
        ids.extend(row)
        queues.append(queue)
        if len(queues) == size:
            yield np.array(ids), np.array(offsets), np.array(queues)
            ids, offsets, queues = [], [], []
