//! Decides when a statement is written whether it modifies answers or informs them.
