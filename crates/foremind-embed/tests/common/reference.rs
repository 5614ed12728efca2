//! The encoder in f32, written for no other virtue than being plain.

use foremind_embed::weights::Checkpoint;

const WIDTH: usize = 384;
const HEAD: usize = 32;

/// See above.
pub struct Reference {
    words: Vec<f32>,
    places: Vec<f32>,
    types: Vec<f32>,
    norm: [Vec<f32>; 2],
    pub layers: Vec<Layer>,
}

pub struct Layer {
    /// Query, key, value, merge, expand, contract: weights `[outputs][inputs]` and bias.
    pub linear: [[Vec<f32>; 2]; 6],
    norms: [[Vec<f32>; 2]; 2],
}

impl Reference {
    pub fn new(checkpoint: &dyn Checkpoint) -> Self {
        let layers = (0..)
            .take_while(|layer| {
                let name = format!("encoder.layer.{layer}.output.dense.bias");
                checkpoint.tensor(&name).is_some()
            })
            .count();
        let tensor = |name: String| checkpoint.tensor(&name).unwrap();
        let both = |name: String| {
            [
                tensor(format!("{name}.weight")),
                tensor(format!("{name}.bias")),
            ]
        };
        let layer = |index: usize| {
            let part = |name: &str| both(format!("encoder.layer.{index}.{name}"));
            Layer {
                linear: [
                    "attention.self.query",
                    "attention.self.key",
                    "attention.self.value",
                    "attention.output.dense",
                    "intermediate.dense",
                    "output.dense",
                ]
                .map(part),
                norms: ["attention.output.LayerNorm", "output.LayerNorm"].map(part),
            }
        };
        let embedding = |name: &str| tensor(format!("embeddings.{name}_embeddings.weight"));
        Self {
            words: embedding("word"),
            places: embedding("position"),
            types: embedding("token_type"),
            norm: both("embeddings.LayerNorm".to_owned()),
            layers: (0..layers).map(layer).collect(),
        }
    }

    /// The last hidden states, a row of 384 for each token.
    pub fn states(&self, tokens: &[u32]) -> Vec<f32> {
        let mut states: Vec<f32> = Vec::with_capacity(tokens.len() * WIDTH);
        for (place, token) in tokens.iter().enumerate() {
            let word = &self.words[*token as usize * WIDTH..][..WIDTH];
            let place = &self.places[place * WIDTH..][..WIDTH];
            let sum = word
                .iter()
                .zip(place)
                .zip(&self.types)
                .map(|((w, p), t)| w + p + t);
            states.extend(sum);
        }
        normalise(&mut states, &self.norm);
        for layer in &self.layers {
            let [query, key, value] = [0, 1, 2].map(|part| linear(&states, &layer.linear[part]));
            add(
                &mut states,
                &linear(&attend(&query, &key, &value), &layer.linear[3]),
            );
            normalise(&mut states, &layer.norms[0]);
            let mut wide = linear(&states, &layer.linear[4]);
            wide.iter_mut()
                .for_each(|x| *x *= phi(f64::from(*x)) as f32);
            add(&mut states, &linear(&wide, &layer.linear[5]));
            normalise(&mut states, &layer.norms[1]);
        }
        states
    }

    /// Their mean, scaled to length 1.
    pub fn unit_vector(&self, tokens: &[u32]) -> Vec<f64> {
        let mut mean = vec![0.0; WIDTH];
        for row in self.states(tokens).chunks_exact(WIDTH) {
            mean.iter_mut()
                .zip(row)
                .for_each(|(m, x)| *m += f64::from(*x));
        }
        let length = mean.iter().map(|x| x * x).sum::<f64>().sqrt();
        mean.iter().map(|x| x / length).collect()
    }
}

fn linear(rows: &[f32], [weight, bias]: &[Vec<f32>; 2]) -> Vec<f32> {
    // Four rows at a time: a row of weights is then read once for them.
    const ROWS: usize = 4;
    let (inputs, outputs) = (weight.len() / bias.len(), bias.len());
    let mut output = vec![0.0; rows.len() / inputs * outputs];
    let tiles = output.chunks_mut(ROWS * outputs);
    for (rows, output) in rows.chunks(ROWS * inputs).zip(tiles) {
        for (column, (weight, bias)) in weight.chunks_exact(inputs).zip(bias).enumerate() {
            let mut sums = [[0.0_f32; 8]; ROWS];
            for (row, sums) in rows.chunks_exact(inputs).zip(&mut sums) {
                for (x, w) in row.as_chunks::<8>().0.iter().zip(weight.as_chunks::<8>().0) {
                    for lane in 0..8 {
                        sums[lane] += x[lane] * w[lane];
                    }
                }
            }
            for (row, sums) in output.chunks_exact_mut(outputs).zip(&sums) {
                row[column] = sums.iter().sum::<f32>() + bias;
            }
        }
    }
    output
}

fn add(states: &mut [f32], more: &[f32]) {
    states.iter_mut().zip(more).for_each(|(x, y)| *x += y);
}

fn normalise(states: &mut [f32], [scale, shift]: &[Vec<f32>; 2]) {
    for row in states.chunks_exact_mut(WIDTH) {
        let mean = row.iter().map(|x| f64::from(*x)).sum::<f64>() / WIDTH as f64;
        let variance = row
            .iter()
            .map(|x| (f64::from(*x) - mean).powi(2))
            .sum::<f64>()
            / WIDTH as f64;
        let deviation = (variance + 1e-12).sqrt();
        for ((x, scale), shift) in row.iter_mut().zip(scale).zip(shift) {
            *x = ((f64::from(*x) - mean) / deviation) as f32 * scale + shift;
        }
    }
}

fn attend(query: &[f32], key: &[f32], value: &[f32]) -> Vec<f32> {
    let tokens = query.len() / WIDTH;
    let mut output = vec![0.0; query.len()];
    for head in (0..WIDTH).step_by(HEAD) {
        let part = |of: &[f32], token: usize| of[token * WIDTH + head..][..HEAD].to_vec();
        let keys: Vec<Vec<f32>> = (0..tokens).map(|u| part(key, u)).collect();
        for t in 0..tokens {
            let query = part(query, t);
            let dot = |key: &Vec<f32>| query.iter().zip(key).map(|(a, b)| a * b).sum::<f32>();
            let scores: Vec<f32> = keys
                .iter()
                .map(|key| dot(key) / (HEAD as f32).sqrt())
                .collect();
            let most = scores.iter().copied().fold(f32::MIN, f32::max);
            let shares: Vec<f32> = scores.iter().map(|s| (s - most).exp()).collect();
            let sum: f32 = shares.iter().sum();
            for (u, share) in shares.iter().enumerate() {
                for channel in head..head + HEAD {
                    output[t * WIDTH + channel] += share / sum * value[u * WIDTH + channel];
                }
            }
        }
    }
    output
}

/// The error function.
#[allow(dead_code)] // one of the tests that include this file
pub fn erf(x: f64) -> f64 {
    2.0 * phi(x * std::f64::consts::SQRT_2) - 1.0
}

/// The Gaussian distribution function, after Abramowitz and Stegun 7.1.26: off by at most 1.5e-7.
fn phi(x: f64) -> f64 {
    let z = x.abs() / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * z);
    let p = [
        1.061_405_429,
        -1.453_152_027,
        1.421_413_741,
        -0.284_496_736,
        0.254_829_592,
    ];
    let tail = p.iter().fold(0.0, |sum, c| sum * t + c) * t * (-z * z).exp() / 2.0;
    if x < 0.0 { tail } else { 1.0 - tail }
}
