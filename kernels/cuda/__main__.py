"""`python -m warpfold.kernels.cuda` compiles every CUDA source (`compile_all`)."""

import sys

from warpfold.kernels.cuda.compile_all import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
