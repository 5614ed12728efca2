//! Records, profile, recall and erasure as a state machine without I/O, clock or randomness.
