//! One check for both text readers.

use gibbsite::data::dataset::{Dataset, Format, ReadParams, read_from};
use gibbsite::par::Par;

/// Reads `bytes` whole and in chunks of a length that their number decides: the same data set, or the same message.
pub fn check(format: Format, bytes: &[u8]) {
    // Flags, so that the other ways to read are tried too.
    let Some((&flags, text)) = bytes.split_first() else { return };
    let params = ReadParams {
        format: Some(format),
        zero_based: [None, Some(true), Some(false)][usize::from(flags & 3) % 3],
        target_required: flags & 4 == 0,
        target: (flags & 8 != 0).then(|| "y".to_owned()),
        ..ReadParams::default()
    };
    // Packed inputs are for `Source`'s users; here the text matters.
    if text.starts_with(&[0x1f, 0x8b]) || text.starts_with(&[0x28, 0xb5]) {
        return;
    }
    let whole = read_from::<f64>(text, &params);
    let cut = ReadParams { chunk: 1 + usize::from(flags >> 4), par: Par::Seq, ..params.clone() };
    match (&whole, read_from::<f64>(text, &cut)) {
        (Ok(a), Ok(b)) => {
            assert_eq!(*a, b);
            sane(a);
            // Single precision may be too small for a value, and for nothing else.
            if let Err(error) = read_from::<f32>(text, &params) {
                assert!(error.to_string().ends_with("too large for single precision"), "{error}");
            }
            // With its own columns it is read as it was.
            let columns = Some(a.names.clone());
            let named = ReadParams { columns, ..params };
            if let Ok(again) = read_from::<f64>(text, &named) {
                assert_eq!((&again.matrix, &again.target, &again.names), (&a.matrix, &a.target, &a.names));
            }
        }
        (Err(a), Err(b)) => assert_eq!(a.to_string(), b.to_string()),
        (a, b) => panic!("whole: {a:?}, in chunks: {b:?}"),
    }
}

/// What holds for every data set.
pub fn sane(data: &Dataset) {
    let Dataset { matrix, target, names, .. } = data;
    assert!(target.is_empty() || target.len() == matrix.rows());
    assert!(target.iter().all(|t| t.is_finite()));
    assert_eq!(names.len(), matrix.columns());
    let mut nonzeros = 0;
    for j in 0..matrix.columns() {
        for (i, value) in matrix.column(j).iter::<f64>() {
            assert!(i < matrix.rows() && value.is_finite());
            nonzeros += usize::from(value != 0.0);
        }
    }
    assert_eq!(nonzeros, matrix.nonzeros());
    let product = matrix.product(&vec![1e-300; matrix.columns()]);
    assert_eq!(product.len(), matrix.rows());
}
