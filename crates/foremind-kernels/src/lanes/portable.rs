use super::Lanes;

/// Arrays and loops: the definition of every operation, and the path of hosts without a vector path of their own.
#[derive(Clone, Copy, Debug)]
pub struct Portable;

#[inline(always)]
fn zip<T: Copy, U, const N: usize>(a: [T; N], b: [T; N], f: impl Fn(T, T) -> U) -> [U; N] {
    core::array::from_fn(|i| f(a[i], b[i]))
}

impl Lanes for Portable {
    type F = [f32; 4];
    type I = [i32; 4];
    type H = [i16; 8];
    type B = [i8; 16];

    #[inline(always)]
    fn splat(value: f32) -> [f32; 4] {
        [value; 4]
    }
    #[inline(always)]
    fn load(from: &[f32; 4]) -> [f32; 4] {
        *from
    }
    #[inline(always)]
    fn store(to: &mut [f32; 4], value: [f32; 4]) {
        *to = value;
    }
    #[inline(always)]
    fn add(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |a, b| a + b)
    }
    #[inline(always)]
    fn sub(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |a, b| a - b)
    }
    #[inline(always)]
    fn mul(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |a, b| a * b)
    }
    #[inline(always)]
    fn div(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |a, b| a / b)
    }
    #[inline(always)]
    fn max(a: [f32; 4], b: [f32; 4]) -> [f32; 4] {
        zip(a, b, |a, b| if a < b { b } else { a })
    }
    #[inline(always)]
    fn bits(a: [f32; 4]) -> [i32; 4] {
        a.map(|a| a.to_bits() as i32)
    }
    #[inline(always)]
    fn from_bits(a: [i32; 4]) -> [f32; 4] {
        a.map(|a| f32::from_bits(a as u32))
    }
    #[inline(always)]
    fn to_f32(a: [i32; 4]) -> [f32; 4] {
        a.map(|a| a as f32)
    }

    #[inline(always)]
    fn splat_i32(value: i32) -> [i32; 4] {
        [value; 4]
    }
    #[inline(always)]
    fn load_i32(from: &[i32; 4]) -> [i32; 4] {
        *from
    }
    #[inline(always)]
    fn store_i32(to: &mut [i32; 4], value: [i32; 4]) {
        *to = value;
    }
    #[inline(always)]
    fn add_i32(a: [i32; 4], b: [i32; 4]) -> [i32; 4] {
        zip(a, b, i32::wrapping_add)
    }
    #[inline(always)]
    fn sub_i32(a: [i32; 4], b: [i32; 4]) -> [i32; 4] {
        zip(a, b, i32::wrapping_sub)
    }
    #[inline(always)]
    fn max_i32(a: [i32; 4], b: [i32; 4]) -> [i32; 4] {
        zip(a, b, i32::max)
    }
    #[inline(always)]
    fn and_i32(a: [i32; 4], b: [i32; 4]) -> [i32; 4] {
        zip(a, b, |a, b| a & b)
    }
    #[inline(always)]
    fn shl<const BITS: u32>(a: [i32; 4]) -> [i32; 4] {
        a.map(|a| a << BITS)
    }
    #[inline(always)]
    fn narrow(a: [i32; 4], b: [i32; 4]) -> [i16; 8] {
        core::array::from_fn(|i| {
            let wide = if i < 4 { a[i] } else { b[i - 4] };
            wide.clamp(i32::from(i16::MIN), i32::from(i16::MAX)) as i16
        })
    }
    #[inline(always)]
    fn store_i16(to: &mut [i16; 8], value: [i16; 8]) {
        *to = value;
    }
    #[inline(always)]
    fn interleave(a: [i16; 8], b: [i16; 8]) -> ([i16; 8], [i16; 8]) {
        let of = |start: usize| {
            move |i: usize| {
                if i.is_multiple_of(2) {
                    a[start + i / 2]
                } else {
                    b[start + i / 2]
                }
            }
        };
        (core::array::from_fn(of(0)), core::array::from_fn(of(4)))
    }
    #[inline(always)]
    fn transpose(rows: [[i16; 8]; 4]) -> [[i16; 8]; 4] {
        core::array::from_fn(|pair| core::array::from_fn(|i| rows[i / 2][2 * pair + i % 2]))
    }
    #[inline(always)]
    fn dot(a: [i16; 8], b: [i16; 8]) -> [i32; 4] {
        let product = |i: usize| i32::from(a[i]) * i32::from(b[i]);
        core::array::from_fn(|i| product(2 * i).wrapping_add(product(2 * i + 1)))
    }

    #[inline(always)]
    unsafe fn widen(from: *const i8) -> [i16; 8] {
        // SAFETY: the caller vouches for 8 bytes; an array of bytes has no alignment.
        unsafe { from.cast::<[i8; 8]>().read() }.map(i16::from)
    }
    #[inline(always)]
    unsafe fn load_i16(from: *const i16) -> [i16; 8] {
        // SAFETY: the caller vouches for 16 bytes.
        unsafe { from.cast::<[i16; 8]>().read_unaligned() }
    }
    #[inline(always)]
    unsafe fn splat_pair(from: *const i16) -> [i16; 8] {
        // SAFETY: the caller vouches for 4 bytes.
        let pair = unsafe { from.cast::<[i16; 2]>().read_unaligned() };
        core::array::from_fn(|i| pair[i % 2])
    }
    #[inline(always)]
    unsafe fn load_bytes(from: *const i8) -> [i8; 16] {
        // SAFETY: the caller vouches for 16 bytes; an array of bytes has no alignment.
        unsafe { from.cast::<[i8; 16]>().read() }
    }
    #[inline(always)]
    unsafe fn splat_quad(from: *const i8) -> [i8; 16] {
        // SAFETY: the caller vouches for 4 bytes; an array of bytes has no alignment.
        let quad = unsafe { from.cast::<[i8; 4]>().read() };
        core::array::from_fn(|i| quad[i % 4])
    }
    #[inline(always)]
    fn dot_sevens(weights: [i8; 16], sevens: [i8; 16], sum: [i32; 4]) -> [i32; 4] {
        let product = |i: usize| i32::from(weights[i]) * i32::from(sevens[i]);
        core::array::from_fn(|i| {
            let four: i32 = (4 * i..4 * i + 4).map(product).sum();
            sum[i].wrapping_add(four)
        })
    }
}
