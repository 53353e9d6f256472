"""Measurements of zonal against its targets and its peers."""
