//! Changes to sealed entries to key/value batches, and back.
