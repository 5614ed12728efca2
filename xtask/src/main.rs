//! `cargo xtask`: build, test, measure and demonstrate foremind.

fn main() {}
