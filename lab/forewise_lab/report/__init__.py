"""Tables, the report and the page on real cases, made from nothing but the results table."""
