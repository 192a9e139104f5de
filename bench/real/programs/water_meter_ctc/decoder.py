"""Prefix beam search for CTC (Hannun et al., 2014), without a language model."""
import math
from collections import defaultdict

from data import ALPHABET

NEG_INF = -float("inf")


def logsumexp(*args):
    top = max(args)
    if top == NEG_INF:
        return NEG_INF
    return top + math.log(sum(math.exp(a - top) for a in args))


def beam_search(log_probs, beam_size=10, blank=0):
    """log_probs: numpy array (time, classes). Returns the best text and its log probability."""
    steps, classes = log_probs.shape
    beam = [((), (0.0, NEG_INF))]  # prefix -> (ends in blank, does not)
    for t in range(steps):
        following = defaultdict(lambda: (NEG_INF, NEG_INF))
        for c in range(classes):
            p = log_probs[t, c]
            for prefix, (p_blank, p_char) in beam:
                if c == blank:
                    n_blank, n_char = following[prefix]
                    following[prefix] = (logsumexp(n_blank, p_blank + p, p_char + p), n_char)
                    continue
                end = prefix[-1] if prefix else None
                extended = prefix + (c,)
                n_blank, n_char = following[extended]
                if c != end:
                    n_char = logsumexp(n_char, p_blank + p, p_char + p)
                else:
                    n_char = logsumexp(n_char, p_blank + p)
                following[extended] = (n_blank, n_char)
                if c == end:
                    n_blank, n_char = following[prefix]
                    following[prefix] = (n_blank, logsumexp(n_char, p_char + p))
        beam = sorted(following.items(), key=lambda item: logsumexp(*item[1]), reverse=True)[:beam_size]
    prefix, scores = beam[0]
    return "".join(ALPHABET[c - 1] for c in prefix), logsumexp(*scores)
