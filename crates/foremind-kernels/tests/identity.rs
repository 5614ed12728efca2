//! Scalar and vector code, both ways to form products, a batch and its members: the same bits.

#[path = "common/cases.rs"]
mod cases;

use cases::{Outcome, Random, all};
use foremind_kernels::Kernel;
use foremind_kernels::encoder::Workspace;
use foremind_kernels::lanes::{Native, Portable};

#[track_caller]
fn check(left: Vec<Outcome>, right: Vec<Outcome>) {
    assert_eq!(left.len(), right.len());
    for (left, right) in left.iter().zip(&right) {
        assert!(
            left.bytes.len() > 1000,
            "{} holds next to nothing",
            left.family
        );
        assert_eq!(left.bytes.len(), right.bytes.len(), "{}", left.family);
        let first = left
            .bytes
            .iter()
            .zip(&right.bytes)
            .position(|(a, b)| a != b);
        assert_eq!(first, None, "first byte that differs in: {}", left.family);
    }
}

#[test]
fn native_lanes_give_the_bits_of_scalar_code() {
    check(all::<Native>(Kernel::Pairs), all::<Portable>(Kernel::Pairs));
}

#[test]
fn sevens_give_the_bits_of_pairs() {
    check(all::<Native>(Kernel::Sevens), all::<Native>(Kernel::Pairs));
}

#[test]
fn scalar_sevens_give_the_bits_of_pairs() {
    check(
        all::<Portable>(Kernel::Sevens),
        all::<Native>(Kernel::Pairs),
    );
}

#[test]
fn a_sequence_does_not_feel_its_batch() {
    let mut random = Random::new(8);
    let encoder = random.encoder(Kernel::Pairs, 3);
    let lengths = [5, 1, 64, 33, 2, 256, 7];
    let rows: usize = lengths.iter().sum();
    let states = random.signed_row(rows * 128, 1.0);
    let mut together = states.clone();
    encoder.run::<Native>(&mut together, &lengths, &mut Workspace::default());
    let mut at = 0;
    for length in lengths {
        let part = at..at + length * 128;
        let mut alone = states[part.clone()].to_vec();
        encoder.run::<Native>(&mut alone, &[length], &mut Workspace::default());
        assert!(
            alone
                .iter()
                .zip(&together[part])
                .all(|(a, b)| a.to_bits() == b.to_bits())
        );
        at += length * 128;
    }
}
