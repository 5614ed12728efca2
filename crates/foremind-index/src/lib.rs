//! BM25, vectors and their fusion.
