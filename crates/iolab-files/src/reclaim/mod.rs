//! Page replacement and writes of parts of pages.
