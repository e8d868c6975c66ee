"""The library: what `import iolab` offers; the command line is a console around the same."""
