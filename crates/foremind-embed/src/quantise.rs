use foremind_types::VECTOR_DIMENSIONS;

/// A unit vector as 8-bit integers: `unit[i]` is about `vector[i] * scale`, with an error of at most
/// half of `scale`. Symmetric, so that a dot product of two rows needs no offsets.
pub(crate) fn int8(unit: &[f32; VECTOR_DIMENSIONS]) -> (Vec<i8>, f32) {
    let peak = unit.iter().fold(0.0_f32, |peak, x| peak.max(x.abs()));
    let scale = peak / 127.0;
    // The peak itself maps to +-127, so the rounded value always fits.
    let vector = unit.iter().map(|x| (x / scale).round() as i8).collect();
    (vector, scale)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_is_at_most_half_a_step() {
        let mut unit = [0.0; VECTOR_DIMENSIONS];
        for (at, x) in unit.iter_mut().enumerate() {
            *x = ((at * 37 % 101) as f32 - 50.0) / 600.0;
        }
        let (vector, scale) = int8(&unit);
        assert!(vector.contains(&-127));
        for (x, q) in unit.iter().zip(&vector) {
            let error = (x - f32::from(*q) * scale).abs();
            assert!(error <= scale * 0.500_01, "{x} became {q} x {scale}");
        }
    }
}
