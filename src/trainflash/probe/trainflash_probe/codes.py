"""Event codes: the low 12 bits of a word of the events file. They travel in each process header, so readers import nothing from here."""

VERSION = "trainflash-probe.v1"

PHASES = ("Data", "H2D", "Fwd", "Bwd", "Opt", "Eval", "Ckpt", "Log", "Other")

STEP = 1  # a step boundary: all before it is complete (the file's head counts a step as soon as its last update is done)
VALUE = 3  # not a time: a number that belongs to the word before it (CPU nanoseconds of a fetch)
FETCH = 4  # the dataset begins to work on a batch
COLLATE = 5  # collate_fn begins
FETCHED = 6  # the batch is ready; two VALUEs follow: ns on a core, ns runnable without one (absent where the kernel does not say)
EXIT = 7  # orderly end of the process
COLLECTIVE = 8  # a call that talks to other ranks returned; two VALUEs: ns inside, 2 × bytes + 1 (+ 0: only waiting for an earlier call)
REDUCED = 9  # a backward that reduces gradients returned; two VALUEs: ns since the last gradient was ready, bytes reduced

FIRST_PHASE = 16  # begin of phase i is FIRST_PHASE + 2 i, its end one more
DATA_OF = 256  # + loader id: Data begins, a fetch from that loader
ITER_OF = 512  # + loader id: Data begins, iter(loader)
SAMPLE_OF = 1024  # + place id: a source-line sample
MAX_LOADER = 255
MAX_PLACE = 3071

HEADER_WORDS = 8  # magic, completed steps, dropped events, reserved
MAGIC = int.from_bytes(b"TFEVENT1", "little")

DATA, H2D, FWD, BWD, OPT, EVAL, CKPT, LOG, OTHER = (FIRST_PHASE + 2 * i for i in range(len(PHASES)))
DATA_END = DATA + 1
FWD_END = FWD + 1
BWD_END = BWD + 1
OPT_END = OPT + 1
EVAL_END = EVAL + 1
OTHER_END = OTHER + 1

NAMES = {
    "step": STEP,
    "value": VALUE,
    "fetch": FETCH,
    "collate": COLLATE,
    "fetched": FETCHED,
    "exit": EXIT,
    "collective": COLLECTIVE,
    "reduced": REDUCED,
    "data_of": DATA_OF,
    "iter_of": ITER_OF,
    "sample_of": SAMPLE_OF,
    "header_words": HEADER_WORDS,
}
for _i, _name in enumerate(PHASES):
    NAMES[_name] = FIRST_PHASE + 2 * _i
