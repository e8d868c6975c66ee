//! The page cache: pages by file, their content, and what is dirty.
