//! Stores that fail, lag and conflict on purpose, seeded entropy, drivers for tests.
