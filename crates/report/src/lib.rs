//! A run as text, JSON, CSV or Markdown.
