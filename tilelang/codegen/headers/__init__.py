"""Device headers: text that compilers include, and what generates part of it."""
