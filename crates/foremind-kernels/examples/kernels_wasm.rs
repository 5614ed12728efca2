//! The kernels over plain WebAssembly exports: the cases that must agree on every host (`tests/kernels/identity.mjs`)
//! and loops to be timed (`tests/kernels/time.mjs`). Memory is never given back; an instance serves one script.
#![allow(missing_docs)]

#[path = "../tests/common/cases.rs"]
mod cases;

use cases::Random;
use foremind_kernels::Kernel;
use foremind_kernels::activations::Activations;
use foremind_kernels::encoder::{Encoder, Layer, Workspace};
use foremind_kernels::lanes::{Native, Portable};
use foremind_kernels::product::linear;
use foremind_kernels::weights::Matrix;

fn kernel(sevens: u32) -> Kernel {
    if sevens == 1 {
        Kernel::Sevens
    } else {
        Kernel::Pairs
    }
}

/// The outcomes of all cases, each family as its length (u32) and its bytes; starts with the length of all of it.
#[unsafe(no_mangle)]
pub extern "C" fn outcomes(portable: u32, sevens: u32) -> *const u8 {
    let kernel = kernel(sevens);
    let families = match portable {
        1 => cases::all::<Portable>(kernel),
        _ => cases::all::<Native>(kernel),
    };
    cases::join(&families).leak().as_ptr()
}

pub struct Product {
    input: Vec<f32>,
    activations: Activations,
    matrix: Matrix,
    output: Vec<f32>,
}

#[unsafe(no_mangle)]
pub extern "C" fn product_new(
    rows: usize,
    inputs: usize,
    outputs: usize,
    sevens: u32,
) -> *mut Product {
    let mut random = Random::new(1);
    let product = Product {
        input: random.signed_row(rows * inputs, 1.0),
        activations: Activations::default(),
        matrix: random.matrix(kernel(sevens), outputs, inputs),
        output: vec![0.0; rows * outputs],
    };
    let product = Box::leak(Box::new(product));
    quantise(product, 1);
    product
}

/// # Safety
/// `product` comes from [`product_new`] of this instance and is in no other use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn product_run(product: *mut Product, times: u32) {
    // SAFETY: the caller's promise.
    let product = unsafe { &mut *product };
    for _ in 0..times {
        linear::<Native>(&product.activations, &product.matrix, &mut product.output);
    }
}

/// # Safety
/// As [`product_run`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn product_quantise(product: *mut Product, times: u32) {
    // SAFETY: the caller's promise.
    quantise(unsafe { &mut *product }, times);
}

fn quantise(product: &mut Product, times: u32) {
    let matrix = &product.matrix;
    for _ in 0..times {
        product
            .activations
            .quantise::<Native>(matrix.kernel(), &product.input, matrix.inputs());
    }
}

/// An encoder of the shipped model's shape with arbitrary weights.
pub struct Network {
    encoder: Encoder,
    states: Vec<f32>,
    space: Workspace,
}

#[unsafe(no_mangle)]
pub extern "C" fn network_new(sevens: u32) -> *mut Network {
    let mut random = Random::new(2);
    let kernel = kernel(sevens);
    let layer = |_| Layer {
        project: random.matrix(kernel, 1152, 384),
        merge: random.matrix(kernel, 384, 384),
        merge_norm: random.norm(384),
        expand: random.matrix(kernel, 1536, 384),
        contract: random.matrix(kernel, 384, 1536),
        contract_norm: random.norm(384),
    };
    let Some(encoder) = Encoder::new((0..6).map(layer).collect()) else {
        return core::ptr::null_mut();
    };
    Box::leak(Box::new(Network {
        encoder,
        states: Vec::new(),
        space: Workspace::default(),
    }))
}

/// # Safety
/// `network` comes from [`network_new`] of this instance and is in no other use.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn network_run(network: *mut Network, tokens: usize) {
    // SAFETY: the caller's promise.
    let network = unsafe { &mut *network };
    network.states.clear();
    network
        .states
        .extend((0..tokens * 384).map(|i| (i % 1000) as f32 / 500.0 - 1.0));
    network
        .encoder
        .run::<Native>(&mut network.states, &[tokens], &mut network.space);
}
