//! Text to sentence vector: WordPiece, MiniLM, pooling.
