"""`python -m zonal`."""

from zonal.cli.app import main

if __name__ == "__main__":
    main()
