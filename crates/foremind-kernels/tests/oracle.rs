//! The kernels against a few lines of obvious arithmetic.
#![allow(clippy::unwrap_used)] // helpers outside of a test function

#[path = "common/cases.rs"]
mod cases;

use cases::{EXTREMES, Random};
use foremind_kernels::activations::Activations;
use foremind_kernels::attention::{Scratch, attention};
use foremind_kernels::dense::{Delta, attention_pool};
use foremind_kernels::encoder::Workspace;
use foremind_kernels::lanes::{Lanes, Native};
use foremind_kernels::math::{exp_nonpositive, gelu_all};
use foremind_kernels::norm::{Norm, mean_pool, to_int8, unit};
use foremind_kernels::product::linear;
use foremind_kernels::weights::{Matrix, MatrixError};
use foremind_kernels::{GROUP, Kernel};

/// A row of activations as integers and what a unit is worth.
fn quantise(row: &[f32]) -> (Vec<i32>, f32) {
    let largest = row.iter().fold(0.0, |a: f32, b| a.max(b.abs()));
    if row.iter().any(|x| !x.is_finite()) || !(1e-30..=1e15).contains(&largest) {
        return (vec![0; row.len()], 0.0);
    }
    let factor = 8191.0 / largest;
    let values = row.iter().map(|x| (x * factor).round_ties_even() as i32);
    (values.collect(), largest / 8191.0)
}

/// One output: exact sums of groups, each scaled and added in order.
fn output(row: &[i32], step: f32, weights: &[i8], steps: &[f32], bias: f32) -> f32 {
    let groups = row.chunks(GROUP).zip(weights.chunks(GROUP));
    let total = groups
        .zip(steps)
        .fold(0.0, |total: f32, ((row, weights), step)| {
            let products = row.iter().zip(weights).map(|(a, w)| a * i32::from(*w));
            total + products.sum::<i32>() as f32 * step
        });
    total * step + bias
}

fn check_product(kernel: Kernel, random: &mut Random, rows: &[f32], outputs: usize, inputs: usize) {
    let weights = random.weights(outputs * inputs);
    let steps: Vec<f32> = (0..outputs * inputs / GROUP)
        .map(|_| random.signed().abs())
        .collect();
    let bias = random.signed_row(outputs, 1.0);
    let matrix =
        Matrix::from_rows(kernel, outputs, inputs, &weights, &steps, bias.clone()).unwrap();
    let mut activations = Activations::default();
    activations.quantise::<Native>(kernel, rows, inputs);
    let mut found = vec![f32::NAN; activations.rows() * outputs];
    linear::<Native>(&activations, &matrix, &mut found);
    for (row, found) in rows.chunks(inputs).zip(found.chunks(outputs)) {
        let (row, step) = quantise(row);
        for (o, found) in found.iter().enumerate() {
            let groups = inputs / GROUP;
            let expected = output(
                &row,
                step,
                &weights[o * inputs..(o + 1) * inputs],
                &steps[o * groups..(o + 1) * groups],
                bias[o],
            );
            assert_eq!(
                expected.to_bits(),
                found.to_bits(),
                "{kernel:?}, output {o}"
            );
        }
    }
}

#[test]
fn products_equal_the_naive_sum_to_the_bit() {
    let mut random = Random::new(11);
    for kernel in [Kernel::Pairs, Kernel::Sevens] {
        for rows in 1..=256 {
            let input = random.signed_row(rows * 128, 2.0);
            check_product(kernel, &mut random, &input, 8, 128);
        }
        for (outputs, inputs) in [(8, 256), (16, 384), (40, 384), (384, 1536)] {
            for rows in [1, 2, 3, 6] {
                let input = random.signed_row(rows * inputs, 2.0);
                check_product(kernel, &mut random, &input, outputs, inputs);
            }
        }
        for extreme in EXTREMES {
            let mut input = random.signed_row(3 * 128, 1.0);
            input[140] = extreme;
            check_product(kernel, &mut random, &input, 8, 128);
        }
    }
}

/// Below 2.5 the Maclaurin series, above the continued fraction of the complement.
fn erf(x: f64) -> f64 {
    let z = x.abs();
    let root = core::f64::consts::PI.sqrt();
    if z > 2.5 {
        let fraction = (1..=60)
            .rev()
            .fold(0.0, |f, k| f64::from(k) / 2.0 / (z + f));
        return x.signum() * (1.0 - (-z * z).exp() / root / (z + fraction));
    }
    let (mut term, mut sum) = (x, x);
    for n in 1..80 {
        term *= -x * x / f64::from(n);
        sum += term / f64::from(2 * n + 1);
    }
    sum * 2.0 / root
}

#[test]
fn functions_are_as_close_as_they_say() {
    let points: Vec<f32> = (-90_000..=90_000).map(|i| i as f32 / 1000.0).collect();
    let mut worst = 0.0f64;
    for x in points.iter().filter(|x| (-87.0..=0.0).contains(*x)) {
        let mut e = [0.0; 4];
        Native::store(&mut e, exp_nonpositive::<Native>(Native::splat(*x)));
        let exact = f64::from(*x).exp();
        worst = worst.max((f64::from(e[0]) - exact).abs() / exact);
    }
    assert!(worst < 2.4e-7, "exp: relative error {worst:e}");

    let mut values = points.clone();
    values.resize(values.len().next_multiple_of(4), 0.0);
    gelu_all::<Native>(&mut values);
    for (x, found) in points.iter().zip(&values) {
        let x = f64::from(*x);
        let exact = x * 0.5 * (1.0 + erf(x / 2f64.sqrt()));
        let allowed = if x.abs() <= 8.0 { 8e-5 } else { 8e-6 * x.abs() };
        assert!(
            (f64::from(*found) - exact).abs() <= allowed,
            "gelu({x}) = {found}, not {exact}"
        );
    }
}

/// In f64, from the unquantised projections.
fn exact_attention(projected: &[f32], width: usize) -> Vec<f64> {
    let tokens = projected.len() / (3 * width);
    let at = |token: usize, channel: usize| f64::from(projected[token * 3 * width + channel]);
    let mut output = vec![0.0; tokens * width];
    for head in 0..width / 32 {
        for t in 0..tokens {
            let score = |u: usize| {
                let dot: f64 = (head * 32..head * 32 + 32)
                    .map(|c| at(t, c) * at(u, width + c))
                    .sum();
                dot / 32f64.sqrt()
            };
            let scores: Vec<f64> = (0..tokens).map(score).collect();
            let most = scores.iter().copied().fold(f64::MIN, f64::max);
            let shares: Vec<f64> = scores.iter().map(|s| (s - most).exp()).collect();
            let sum: f64 = shares.iter().sum();
            for c in head * 32..head * 32 + 32 {
                let mixed: f64 = (0..tokens).map(|u| shares[u] * at(u, 2 * width + c)).sum();
                output[t * width + c] = mixed / sum;
            }
        }
    }
    output
}

#[test]
fn attention_stays_close_to_exact_attention() {
    let mut random = Random::new(12);
    for tokens in [1, 2, 3, 5, 8, 31, 100, 256] {
        for scale in [0.1, 1.0, 3.0] {
            let projected = random.signed_row(tokens * 3 * 64, scale);
            let mut found = vec![0.0; tokens * 64];
            attention::<Native>(&projected, 64, &mut found, &mut Scratch::default());
            // Values are rounded to 1/4094 of their largest, weights to about as much.
            let allowed = f64::from(scale) * 1.5e-3;
            for (found, exact) in found.iter().zip(exact_attention(&projected, 64)) {
                let error = (f64::from(*found) - exact).abs();
                assert!(
                    error < allowed,
                    "{tokens} tokens at {scale}: off by {error}"
                );
            }
        }
    }
}

#[test]
fn normalisation_and_pooling_follow_their_definitions() {
    let mut random = Random::new(13);
    let width = 384;
    let norm = Norm {
        scale: random.signed_row(width, 2.0),
        shift: random.signed_row(width, 1.0),
    };
    let (states, added) = (
        random.signed_row(7 * width, 3.0),
        random.signed_row(7 * width, 3.0),
    );
    let mut found = states.clone();
    norm.apply::<Native>(&mut found, &added);
    for row in 0..7 {
        let part = row * width..(row + 1) * width;
        let sum: Vec<f64> = states[part.clone()]
            .iter()
            .zip(&added[part.clone()])
            .map(|(a, b)| f64::from(*a) + f64::from(*b))
            .collect();
        let mean = sum.iter().sum::<f64>() / width as f64;
        let variance = sum.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / width as f64;
        for (i, found) in found[part].iter().enumerate() {
            let normal = (sum[i] - mean) / (variance + 1e-12).sqrt();
            let exact = normal * f64::from(norm.scale[i]) + f64::from(norm.shift[i]);
            assert!((f64::from(*found) - exact).abs() < 2e-6);
        }
    }
    let mut mean = vec![0.0; width];
    mean_pool::<Native>(&found, &mut mean);
    for (i, mean) in mean.iter().enumerate() {
        let exact = (0..7)
            .map(|row| f64::from(found[row * width + i]))
            .sum::<f64>()
            / 7.0;
        assert!((f64::from(*mean) - exact).abs() < 1e-6);
    }
    assert!(unit::<Native>(&mut mean));
    let length: f64 = mean.iter().map(|x| f64::from(*x).powi(2)).sum();
    assert!((length - 1.0).abs() < 1e-6);
    let (int8, scale) = to_int8::<Native>(&mean).unwrap();
    assert_eq!(int8.iter().map(|x| x.unsigned_abs()).max(), Some(127));
    for (x, q) in mean.iter().zip(&int8) {
        assert!((x - f32::from(*q) * scale).abs() <= scale * 0.500_01);
    }
    assert!(!unit::<Native>(&mut [0.0; 8]));
    assert!(!unit::<Native>(&mut [f32::NAN; 8]));
    assert!(to_int8::<Native>(&[f32::INFINITY; 8]).is_none());
}

#[test]
fn unsound_weights_are_refused() {
    let new = |values: Vec<i8>, steps: Vec<f32>, bias: Vec<f32>| {
        Matrix::new(Kernel::Pairs, 8, 128, values, steps, bias).map(drop)
    };
    assert_eq!(new(vec![1; 1024], vec![1.0; 8], vec![0.0; 8]), Ok(()));
    assert_eq!(
        new(vec![1; 1023], vec![1.0; 8], vec![0.0; 8]),
        Err(MatrixError::Shape)
    );
    assert_eq!(
        new(vec![1; 1024], vec![1.0; 7], vec![0.0; 8]),
        Err(MatrixError::Shape)
    );
    assert_eq!(
        new(vec![-128; 1024], vec![1.0; 8], vec![0.0; 8]),
        Err(MatrixError::Value)
    );
    assert_eq!(
        new(vec![1; 1024], vec![f32::NAN; 8], vec![0.0; 8]),
        Err(MatrixError::Range)
    );
    assert_eq!(
        new(vec![1; 1024], vec![-1.0; 8], vec![0.0; 8]),
        Err(MatrixError::Range)
    );
    assert_eq!(
        new(vec![1; 1024], vec![1.0; 8], vec![f32::INFINITY; 8]),
        Err(MatrixError::Range)
    );
    assert!(
        Matrix::new(
            Kernel::Pairs,
            9,
            128,
            vec![1; 1152],
            vec![1.0; 9],
            vec![0.0; 9]
        )
        .is_err()
    );
}

#[test]
fn low_rank_changes_follow_their_definition() {
    let mut random = Random::new(15);
    let (inputs, outputs, rank) = (24, 16, 3);
    let a = random.signed_row(rank * inputs, 1.0);
    let b = random.signed_row(outputs * rank, 1.0);
    let delta = Delta::new(inputs, outputs, a.clone(), &b).unwrap();
    let input = random.signed_row(5 * inputs, 1.0);
    let before = random.signed_row(5 * 40, 1.0);
    let mut output = before.clone();
    delta.add::<Native>(&input, &mut output, 40, 8);
    for (at, (found, before)) in output.iter().zip(&before).enumerate() {
        let (row, column) = (at / 40, at % 40);
        let mut expected = f64::from(*before);
        if (8..24).contains(&column) {
            for r in 0..rank {
                let dot =
                    |i: usize| f64::from(input[row * inputs + i]) * f64::from(a[r * inputs + i]);
                let rank_value: f64 = (0..inputs).map(dot).sum();
                expected += rank_value * f64::from(b[(column - 8) * rank + r]);
            }
        }
        assert!(
            (f64::from(*found) - expected).abs() < 1e-5,
            "{found} for {expected}"
        );
    }
    assert!(
        Delta::new(
            inputs,
            outputs,
            vec![0.0; 17 * inputs],
            &vec![0.0; 17 * outputs]
        )
        .is_none()
    );
    assert!(Delta::new(inputs, outputs, vec![0.0; inputs], &vec![0.0; outputs + 1]).is_none());
    assert!(Delta::new(inputs, outputs, vec![f32::NAN; inputs], &vec![0.0; outputs]).is_none());
}

#[test]
fn attention_pooling_follows_its_definition() {
    let mut random = Random::new(16);
    let rows = random.signed_row(7 * 16, 2.0);
    let query = random.signed_row(16, 1.0);
    let mut found = vec![0.0; 16];
    attention_pool::<Native>(&rows, &query, &mut found);
    let score = |row: &[f32]| -> f64 {
        let dot = row
            .iter()
            .zip(&query)
            .map(|(x, q)| f64::from(*x) * f64::from(*q));
        dot.sum::<f64>().exp()
    };
    let sum: f64 = rows.chunks_exact(16).map(score).sum();
    for (column, found) in found.iter().enumerate() {
        let parts = rows
            .chunks_exact(16)
            .map(|row| score(row) * f64::from(row[column]));
        let expected = parts.sum::<f64>() / sum;
        assert!(
            (f64::from(*found) - expected).abs() < 1e-5,
            "{found} for {expected}"
        );
    }
}

#[test]
fn layers_in_two_runs_give_the_bits_of_one() {
    let mut random = Random::new(17);
    let encoder = random.encoder(Kernel::Pairs, 3);
    let states = random.signed_row(9 * 128, 1.0);
    let (mut whole, mut parts) = (states.clone(), states);
    let space = &mut Workspace::default();
    encoder.run::<Native>(&mut whole, &[4, 5], space);
    encoder.run_layers::<Native>(0..2, None, &mut parts, &[4, 5], space);
    encoder.run_layers::<Native>(2..3, None, &mut parts, &[4, 5], space);
    assert!(
        whole
            .iter()
            .zip(&parts)
            .all(|(a, b)| a.to_bits() == b.to_bits())
    );
}
