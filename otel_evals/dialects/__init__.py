"""What a span or log record says about an agent: one module per attribute vocabulary, read by one reader."""
