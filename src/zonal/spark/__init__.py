"""Everything that needs Spark: sessions, jobs, and the Java that they run on."""
