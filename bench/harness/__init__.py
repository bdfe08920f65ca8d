"""What bench.py is made of; the standard library is enough for all of it."""
