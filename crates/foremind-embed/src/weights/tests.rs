use std::collections::HashMap;

use foremind_kernels::encoder::Workspace;
use foremind_kernels::lanes::Native;

use super::*;

const WIDTH: usize = 128;
const WIDE: usize = 256;
const VOCABULARY: usize = 50;

/// A checkpoint with two layers of pseudo-random numbers.
struct Small(HashMap<String, Vec<f32>>);

impl Checkpoint for Small {
    fn tensor(&self, name: &str) -> Option<Vec<f32>> {
        self.0.get(name).cloned()
    }
}

fn small() -> Small {
    let mut state = 1_u64;
    let mut tensors = HashMap::new();
    let mut put = |name: String, length: usize, scale: f32| {
        let values = (0..length).map(|_| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            ((state >> 40) as f32 / 8_388_608.0 - 1.0) * scale
        });
        tensors.insert(name, values.collect());
    };
    for (name, rows) in [("word", VOCABULARY), ("position", 512), ("token_type", 2)] {
        put(
            format!("embeddings.{name}_embeddings.weight"),
            rows * WIDTH,
            0.1,
        );
    }
    let mut norms = vec!["embeddings".to_owned()];
    for layer in 0..2 {
        let layer = format!("encoder.layer.{layer}");
        let square = [
            "attention.self.query",
            "attention.self.key",
            "attention.self.value",
            "attention.output.dense",
        ];
        let shapes = square.map(|part| (part, WIDTH, WIDTH));
        for (part, outputs, inputs) in [
            &shapes[..],
            &[
                ("intermediate.dense", WIDE, WIDTH),
                ("output.dense", WIDTH, WIDE),
            ],
        ]
        .concat()
        {
            put(format!("{layer}.{part}.weight"), outputs * inputs, 0.2);
            put(format!("{layer}.{part}.bias"), outputs, 0.1);
        }
        norms.push(format!("{layer}.attention.output"));
        norms.push(format!("{layer}.output"));
    }
    for norm in norms {
        put(format!("{norm}.LayerNorm.weight"), WIDTH, 1.0);
        put(format!("{norm}.LayerNorm.bias"), WIDTH, 0.1);
    }
    Small(tensors)
}

/// The last word is a reserved one.
fn pack(checkpoint: &Small) -> Result<Vec<u8>, QuantiseError> {
    let words = (1..VOCABULARY).map(|number| format!("word{number}\n"));
    let vocabulary: String = words.chain(["[unused7]\n".to_owned()]).collect();
    quantise(checkpoint, vocabulary.as_bytes())
}

fn read(section: &[u8]) -> Result<Weights, EmbedError> {
    Weights::read(section, WIDTH, Kernel::Pairs)
}

#[test]
fn step_codes_are_eighths_of_octaves() {
    for code in 0..=127_u8 {
        let exact = 0.01 * (f64::from(code) / 8.0).exp2();
        assert!((f64::from(step(0.01, code)) / exact - 1.0).abs() < 3e-7);
        assert!(code == 0 || step(0.01, code) > step(0.01, code - 1));
    }
}

#[test]
fn equal_checkpoints_give_equal_bytes() {
    assert_eq!(pack(&small()).unwrap(), pack(&small()).unwrap());
}

#[test]
fn what_is_read_is_close_to_what_was_packed() {
    let checkpoint = small();
    let section = pack(&checkpoint).unwrap();
    let weights = read(&section).unwrap();
    assert_eq!(weights.vocabulary_size(), VOCABULARY);

    let words = checkpoint
        .tensor("embeddings.word_embeddings.weight")
        .unwrap();
    let mut found = [0.0; WIDTH];
    for (word, row) in words.chunks_exact(WIDTH).enumerate() {
        weights.word(&section, word as u32, &mut found).unwrap();
        // A step is at most root mean square, 0.058, / 10.6 * (1000 / 8000)^(1/4), an eighth of an octave more for its
        // code, and the error half of it. A reserved word has no values.
        let allowed = 0.058 / 10.6 * 0.595 * 1.091 / 2.0 * 1.05;
        for (found, exact) in found.iter().zip(row) {
            let exact = if word == VOCABULARY - 1 { 0.0 } else { *exact };
            let error: f32 = found - exact;
            assert!(error.abs() < allowed, "word {word}: {found} for {exact}");
        }
    }
    assert!(
        weights
            .word(&section, VOCABULARY as u32, &mut found)
            .is_err()
    );

    let places = checkpoint
        .tensor("embeddings.position_embeddings.weight")
        .unwrap();
    let types = checkpoint
        .tensor("embeddings.token_type_embeddings.weight")
        .unwrap();
    for (at, found) in weights.places.iter().enumerate() {
        let exact = places[at] + types[at % WIDTH];
        assert!((found - exact).abs() < 0.2 / 1011.0 * 0.51);
    }
    let scale = checkpoint.tensor("embeddings.LayerNorm.weight").unwrap();
    for (found, exact) in weights.norm.scale.iter().zip(&scale) {
        assert!((found - exact).abs() < 2e-5);
    }

    // One layer's matrix through a product with unit vectors: it hands the weights back.
    use foremind_kernels::activations::Activations;
    use foremind_kernels::product::linear;
    let mut units = vec![0.0; WIDTH * WIDTH];
    for at in 0..WIDTH {
        units[at * WIDTH + at] = 1.0;
    }
    let mut activations = Activations::default();
    activations.quantise::<Native>(Kernel::Pairs, &units, WIDTH);
    let mut columns = vec![0.0; WIDTH * WIDE];
    linear::<Native>(
        &activations,
        &weights.encoder.layers()[1].expand,
        &mut columns,
    );
    let exact = checkpoint
        .tensor("encoder.layer.1.intermediate.dense.weight")
        .unwrap();
    let bias = checkpoint
        .tensor("encoder.layer.1.intermediate.dense.bias")
        .unwrap();
    for input in 0..WIDTH {
        for output in 0..WIDE {
            let found = columns[input * WIDE + output] - bias[output];
            let error = (found - exact[output * WIDTH + input]).abs();
            // The step may be an eighth of an octave above 0.2 / 127.
            assert!(error < 0.2 / 127.0 * 0.51 * 1.1, "off by {error}");
        }
    }
}

#[test]
fn a_checkpoint_that_lacks_or_breaks_something_is_refused() {
    let name = "encoder.layer.1.output.dense.weight";
    let mut absent = small();
    absent.0.remove(name);
    let found = pack(&absent).unwrap_err();
    assert_eq!(
        found,
        QuantiseError::Tensor {
            name: name.to_owned(),
            expected: 0,
            found: 0
        }
    );
    let mut short = small();
    short.0.get_mut(name).unwrap().pop();
    assert!(matches!(pack(&short), Err(QuantiseError::Tensor { .. })));
    let mut infinite = small();
    infinite.0.get_mut(name).unwrap()[7] = f32::INFINITY;
    assert_eq!(
        pack(&infinite),
        Err(QuantiseError::Values {
            name: name.to_owned()
        })
    );
    assert!(pack(&Small(HashMap::new())).is_err());
}

#[test]
fn altered_and_cut_sections_are_refused_or_compute() {
    let section = pack(&small()).unwrap();
    for cut in (0..section.len()).step_by(997).chain([section.len() - 1]) {
        assert!(read(&section[..cut]).is_err(), "cut to {cut}");
    }
    assert!(read(&[&section[..], &[0]].concat()).is_err());
    assert!(Weights::read(&section, 384, Kernel::Pairs).is_err());
    // Every byte of the head, and some of each part behind.
    for at in (0..700).chain((700..section.len()).step_by(331)) {
        let mut altered = section.clone();
        altered[at] ^= 1 << (at % 8);
        if at % 16 == 0 {
            altered[at] = 255;
        }
        // Where the change is in a plain number, weights of another value are read; sums stay finite even so.
        let Ok(weights) = read(&altered) else {
            continue;
        };
        if at % 3 == 0 {
            let mut states = vec![0.0; 2 * WIDTH];
            for (word, row) in states.chunks_exact_mut(WIDTH).enumerate() {
                // A word may be refused, never more.
                drop(weights.word(&altered, word as u32, row));
            }
            weights
                .norm
                .apply::<Native>(&mut states, &weights.places[..2 * WIDTH]);
            weights
                .encoder
                .run::<Native>(&mut states, &[2], &mut Workspace::default());
            assert!(states.iter().all(|x| x.is_finite()), "byte {at}");
        }
    }
}
