"""The only place that knows Spark: sessions, and the Java that they run on."""
