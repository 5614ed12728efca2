//! Writes the outcomes of all cases on this host to standard output, for `tests/kernels/identity.mjs`.
#![allow(missing_docs)]

#[path = "../tests/common/cases.rs"]
mod cases;

use std::io::Write as _;

use foremind_kernels::Kernel;
use foremind_kernels::lanes::Native;

fn main() -> std::io::Result<()> {
    std::io::stdout().write_all(&cases::join(&cases::all::<Native>(Kernel::Pairs)))
}
