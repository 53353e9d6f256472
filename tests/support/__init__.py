"""What tests share: tables, values, judges and servers."""
