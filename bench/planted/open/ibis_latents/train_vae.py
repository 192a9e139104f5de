from ibis.engine import fit
from ibis.options import get_options

if __name__ == "__main__":
    fit(get_options())
