//! The cases on which all implementations must agree to the bit: every length of 1 to 256 rows or tokens, tails of
//! tiles, extreme values. The native test compares lanes with each other, `tests/kernels/identity.mjs` compares the
//! WebAssembly builds with the native bytes.
#![allow(dead_code)] // the oracle's tests include this file for its inputs alone
#![allow(clippy::unwrap_used)] // test code, though two examples include it as well

use foremind_kernels::Kernel;
use foremind_kernels::activations::Activations;
use foremind_kernels::attention::{self, attention};
use foremind_kernels::dense::{Delta, Deltas, Part, attention_pool, dots};
use foremind_kernels::encoder::{Encoder, Layer, Workspace};
use foremind_kernels::lanes::Lanes;
use foremind_kernels::math::{exp_nonpositive, gelu_all, largest};
use foremind_kernels::norm::{Norm, mean_pool, to_int8, unit};
use foremind_kernels::product::linear;
use foremind_kernels::weights::Matrix;

/// What a family of cases gave, in order.
pub struct Outcome {
    pub family: &'static str,
    pub bytes: Vec<u8>,
}

/// PCG-XSH-RR 64/32, so that the inputs are the same everywhere.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(2).wrapping_add(1))
    }

    pub fn next(&mut self) -> u32 {
        let old = self.0;
        self.0 = old
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        let shifted = (((old >> 18) ^ old) >> 27) as u32;
        shifted.rotate_right((old >> 59) as u32)
    }

    /// Multiples of 2^-24 in -1..1.
    pub fn signed(&mut self) -> f32 {
        (self.next() >> 7) as f32 / 16_777_216.0 - 1.0
    }

    pub fn signed_row(&mut self, length: usize, scale: f32) -> Vec<f32> {
        (0..length).map(|_| self.signed() * scale).collect()
    }

    pub fn weights(&mut self, length: usize) -> Vec<i8> {
        (0..length)
            .map(|_| ((self.next() % 255) as i32 - 127) as i8)
            .collect()
    }

    pub fn matrix(&mut self, kernel: Kernel, outputs: usize, inputs: usize) -> Matrix {
        let values = self.weights(outputs * inputs);
        let steps = (0..outputs * inputs / foremind_kernels::GROUP)
            .map(|_| self.signed().abs() * 0.002)
            .collect();
        let bias = self.signed_row(outputs, 0.5);
        Matrix::new(kernel, outputs, inputs, values, steps, bias).unwrap()
    }

    pub fn norm(&mut self, width: usize) -> Norm {
        Norm {
            scale: self.signed_row(width, 2.0),
            shift: self.signed_row(width, 0.5),
        }
    }

    /// A small encoder: `layers` of width 128 and 256.
    pub fn encoder(&mut self, kernel: Kernel, layers: usize) -> Encoder {
        let layers = (0..layers)
            .map(|_| Layer {
                project: self.matrix(kernel, 384, 128),
                merge: self.matrix(kernel, 128, 128),
                merge_norm: self.norm(128),
                expand: self.matrix(kernel, 256, 128),
                contract: self.matrix(kernel, 128, 256),
                contract_norm: self.norm(128),
            })
            .collect();
        Encoder::new(layers).unwrap()
    }
}

/// Values that break rounding, ranges and signs.
pub const EXTREMES: [f32; 24] = [
    0.0,
    -0.0,
    1.0,
    -1.0,
    0.5,
    -0.5,
    1.5,
    2.5,
    f32::MIN_POSITIVE,
    -1e-40,
    1e-45,
    1e-31,
    1e-29,
    1e14,
    -1e15,
    2e15,
    f32::MAX,
    f32::MIN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::NAN,
    126.999_99,
    8190.5,
    -8191.0,
];

/// Bits of each value; a NaN, whose bits engines may choose, always as the same one.
fn emit(bytes: &mut Vec<u8>, values: &[f32]) {
    for value in values {
        let bits = if value.is_nan() {
            0x7fc0_0000
        } else {
            value.to_bits()
        };
        bytes.extend(bits.to_le_bytes());
    }
}

pub fn all<L: Lanes>(kernel: Kernel) -> Vec<Outcome> {
    type Run = fn(Kernel, &mut Vec<u8>);
    let families: [(&'static str, Run); 8] = [
        ("functions", functions::<L>),
        ("products of 1 to 256 rows", products::<L>),
        ("products at the ends of the range", extreme_products::<L>),
        ("attention of 1 to 256 tokens", attentions::<L>),
        ("normalisation and pooling", norms::<L>),
        ("int8 vectors", vectors::<L>),
        ("encoder of 1 to 256 tokens", encoders::<L>),
        ("low-rank changes and heads", adapters::<L>),
    ];
    families
        .into_iter()
        .map(|(family, run)| {
            let mut bytes = Vec::new();
            run(kernel, &mut bytes);
            Outcome { family, bytes }
        })
        .collect()
}

fn functions<L: Lanes>(_: Kernel, bytes: &mut Vec<u8>) {
    let mut random = Random::new(1);
    let mut values: Vec<f32> = (-2000..2000).map(|i| i as f32 / 128.0).collect();
    values.extend(EXTREMES);
    values.extend((0..4000).map(|_| random.signed() * 100.0));
    for four in values.as_chunks::<4>().0 {
        let mut e = [0.0; 4];
        L::store(
            &mut e,
            exp_nonpositive::<L>(L::load(
                &four.map(|x| if x <= 0.0 { x } else { -x.max(0.0) }),
            )),
        );
        emit(bytes, &e);
    }
    gelu_all::<L>(&mut values);
    emit(bytes, &values);
}

fn product<L: Lanes>(bytes: &mut Vec<u8>, rows: &[f32], matrix: &Matrix) {
    let mut activations = Activations::default();
    activations.quantise::<L>(matrix.kernel(), rows, matrix.inputs());
    let mut output = vec![0.0; activations.rows() * matrix.outputs()];
    linear::<L>(&activations, matrix, &mut output);
    emit(bytes, activations.steps());
    emit(bytes, &output);
}

fn products<L: Lanes>(kernel: Kernel, bytes: &mut Vec<u8>) {
    let mut random = Random::new(2);
    let narrow = random.matrix(kernel, 8, 128);
    for rows in 1..=256 {
        product::<L>(bytes, &random.signed_row(rows * 128, 3.0), &narrow);
    }
    for (outputs, inputs) in [
        (16, 128),
        (24, 256),
        (384, 384),
        (1152, 384),
        (1536, 384),
        (384, 1536),
    ] {
        let matrix = random.matrix(kernel, outputs, inputs);
        for rows in [1, 2, 3, 4, 5, 7, 17] {
            product::<L>(bytes, &random.signed_row(rows * inputs, 3.0), &matrix);
        }
    }
}

fn extreme_products<L: Lanes>(kernel: Kernel, bytes: &mut Vec<u8>) {
    // Every sum at its largest magnitude, of both signs.
    let mut random = Random::new(3);
    for weight in [127, -127] {
        let values = vec![weight; 16 * 1536];
        let full = Matrix::new(
            kernel,
            16,
            1536,
            values,
            vec![16.0; 16 * 12],
            vec![1000.0; 16],
        )
        .unwrap();
        for sign in [1.0, -1.0] {
            for magnitude in [1e-29, 1.0, 1e15] {
                product::<L>(bytes, &vec![sign * magnitude; 5 * 1536], &full);
            }
        }
        let mixed: Vec<f32> = (0..5 * 1536)
            .map(|i| if (i / 3) % 2 == 0 { 1.0 } else { -1.0 })
            .collect();
        product::<L>(bytes, &mixed, &full);
    }
    let matrix = random.matrix(kernel, 16, 128);
    for extreme in EXTREMES {
        for at in [0, 3, 31, 127] {
            let mut row = random.signed_row(128, 1.0);
            row[at] = extreme;
            product::<L>(bytes, &row, &matrix);
        }
    }
    product::<L>(bytes, &[0.0; 128 * 6], &matrix);
}

fn attentions<L: Lanes>(_: Kernel, bytes: &mut Vec<u8>) {
    let mut random = Random::new(4);
    let mut scratch = attention::Scratch::default();
    let mut run = |bytes: &mut Vec<u8>, projected: &[f32], width: usize| {
        let mut output = vec![0.0; projected.len() / 3];
        attention::<L>(projected, width, &mut output, &mut scratch);
        emit(bytes, &output);
    };
    for tokens in 1..=256 {
        let scale = [0.01, 1.0, 4.0, 30.0][tokens % 4];
        run(bytes, &random.signed_row(tokens * 96, scale), 32);
    }
    for tokens in [1, 9, 511, 512] {
        run(bytes, &random.signed_row(tokens * 192, 2.0), 64);
    }
    // Equal keys: every weight at its largest, values of one sign.
    for tokens in [1, 8, 255, 256, 512] {
        run(bytes, &vec![1.0; tokens * 96], 32);
    }
    for extreme in EXTREMES {
        for at in [0, 40, 80, 96 * 4 + 33] {
            let mut projected = random.signed_row(96 * 6, 1.0);
            projected[at] = extreme;
            run(bytes, &projected, 32);
        }
    }
}

fn norms<L: Lanes>(_: Kernel, bytes: &mut Vec<u8>) {
    let mut random = Random::new(5);
    for width in [8, 16, 64, 384] {
        let norm = random.norm(width);
        for rows in [1, 2, 3, 31, 256] {
            let mut states = random.signed_row(rows * width, 5.0);
            let added = random.signed_row(rows * width, 0.5);
            norm.apply::<L>(&mut states, &added);
            emit(bytes, &states);
            let mut mean = vec![0.0; width];
            mean_pool::<L>(&states, &mut mean);
            emit(bytes, &mean);
            bytes.push(u8::from(unit::<L>(&mut mean)));
            emit(bytes, &mean);
        }
        for extreme in EXTREMES {
            let mut states = random.signed_row(width, 1.0);
            states[width / 2 + 1] = extreme;
            let mut vector = states.clone();
            norm.apply::<L>(&mut states, &vec![0.0; width]);
            emit(bytes, &states);
            bytes.push(u8::from(unit::<L>(&mut vector)));
            emit(bytes, &vector);
        }
    }
}

fn vectors<L: Lanes>(_: Kernel, bytes: &mut Vec<u8>) {
    let mut random = Random::new(6);
    let mut put = |vector: &[f32]| {
        emit(bytes, &[largest::<L>(vector.as_chunks().0)]);
        match to_int8::<L>(vector) {
            Some((int8, scale)) => {
                emit(bytes, &[scale]);
                bytes.extend(int8.iter().map(|x| *x as u8));
            }
            None => bytes.push(0xff),
        }
    };
    for _ in 0..200 {
        put(&random.signed_row(384, 0.2));
    }
    for extreme in EXTREMES {
        let mut vector = random.signed_row(384, 0.2);
        vector[77] = extreme;
        put(&vector);
    }
    put(&[0.0; 384]);
}

fn encoders<L: Lanes>(kernel: Kernel, bytes: &mut Vec<u8>) {
    let mut random = Random::new(7);
    let encoder = random.encoder(kernel, 2);
    let mut space = Workspace::default();
    for tokens in 1..=256 {
        let mut states = random.signed_row(tokens * 128, 1.0);
        encoder.run::<L>(&mut states, &[tokens], &mut space);
        emit(bytes, &states);
    }
    let lengths = [3, 1, 30, 8, 2];
    let mut states = random.signed_row(44 * 128, 1.0);
    encoder.run::<L>(&mut states, &lengths, &mut space);
    emit(bytes, &states);
}

/// A change of every matrix of a layer of [`Random::encoder`].
fn deltas(random: &mut Random, layer: usize) -> Deltas {
    let shapes = [
        (128, 128),
        (128, 128),
        (128, 128),
        (128, 128),
        (256, 128),
        (128, 256),
    ];
    let changes = Part::ALL.into_iter().zip(shapes).enumerate();
    let delta = |(at, (part, (outputs, inputs))): (usize, (Part, (usize, usize)))| {
        let rank = [1, 2, 3, 8, 13, 16][at];
        let a = random.signed_row(rank * inputs, 0.2);
        let b = random.signed_row(outputs * rank, 0.2);
        (layer, part, Delta::new(inputs, outputs, a, &b).unwrap())
    };
    Deltas::new(changes.map(delta).collect())
}

fn adapters<L: Lanes>(kernel: Kernel, bytes: &mut Vec<u8>) {
    let mut random = Random::new(9);
    let encoder = random.encoder(kernel, 2);
    let deltas = deltas(&mut random, 1);
    let query = random.signed_row(128, 1.0);
    let head = random.signed_row(24 * 128, 1.0);
    let mut space = Workspace::default();
    for tokens in (1..=40).chain([63, 128, 255, 256]) {
        let mut states = random.signed_row(tokens * 128, 1.0);
        encoder.run_layers::<L>(0..2, Some(&deltas), &mut states, &[tokens], &mut space);
        emit(bytes, &states);
        let mut pooled = vec![0.0; 128];
        attention_pool::<L>(&states, &query, &mut pooled);
        emit(bytes, &pooled);
        let mut features = vec![0.0; 24];
        dots::<L>(&pooled, &head, &mut features);
        emit(bytes, &features);
    }
    for extreme in EXTREMES {
        let mut states = random.signed_row(3 * 128, 1.0);
        states[130] = extreme;
        let mut pooled = vec![0.0; 128];
        attention_pool::<L>(&states, &query, &mut pooled);
        emit(bytes, &pooled);
        encoder.run_layers::<L>(1..2, Some(&deltas), &mut states, &[3], &mut space);
        emit(bytes, &states);
    }
}

/// Families as one run of bytes: the length of what follows, then each with its own length, u32 little-endian.
pub fn join(families: &[Outcome]) -> Vec<u8> {
    let length = |bytes: usize| (bytes as u32).to_le_bytes();
    let total = families.iter().map(|f| 4 + f.bytes.len()).sum();
    let mut all = Vec::from(length(total));
    for family in families {
        all.extend(length(family.bytes.len()));
        all.extend(&family.bytes);
    }
    all
}
