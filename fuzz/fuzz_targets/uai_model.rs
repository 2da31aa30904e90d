//! Any bytes as a UAI model: an error or a network, never a panic; and what is written is read back.
#![no_main]

use gibbsite::data::uai::{read_mar, read_model, read_pr, write_model};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    // The result files have their own readers; any bytes are as good for those.
    let _ = (read_pr(bytes), read_mar(bytes));
    let model = match read_model(bytes) {
        Ok(model) => model,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    // What was read is a legal graph.
    let Ok(graph) = model.network.graph() else { panic!("the reader made an illegal graph") };
    assert_eq!(graph.factors(), model.network.factors());

    let mut text = Vec::new();
    if let Err(error) = write_model(&mut text, model.kind, &model.network) {
        // Subnormal entries lose digits; the writer refuses those and only those, as an all-zero table cannot be read.
        assert_eq!(error.kind(), std::io::ErrorKind::InvalidData);
        let odd = (0..model.network.factors())
            .flat_map(|k| model.network.table(k))
            .any(|v| v.is_finite() && v.abs() > 700.0);
        assert!(odd, "the writer refused an ordinary model: {error}");
        return;
    }
    let Ok(again) = read_model(&text) else { panic!("what was written is not read") };
    assert_eq!(again.kind, model.kind);
    let (a, b) = (&model.network, &again.network);
    assert_eq!((a.cards(), a.factors(), a.entries()), (b.cards(), b.factors(), b.entries()));
    for k in 0..a.factors() {
        assert_eq!(a.scope(k), b.scope(k));
        for (x, y) in a.table(k).iter().zip(b.table(k)) {
            // log, exp, printing and log again: a few units in the last place of the larger of 1 and the value.
            assert!(x == y || (x - y).abs() <= 4.0 * f64::EPSILON * x.abs().max(1.0), "{x} came back as {y}");
        }
    }
});
