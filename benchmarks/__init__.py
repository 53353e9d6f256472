"""Benchmarks of zonal against its targets and its peers."""
