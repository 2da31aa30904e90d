//! Model files.

use super::{data, dense};
use gibbsite::gaussian::{GaussianParams, fit};
use gibbsite::model::container::{Container, Kind, write};
use gibbsite::model::{GaussianFacts, GaussianModel, ModelError};
use serde_json::json;

fn model() -> GaussianModel {
    let (n, p) = (4, 3);
    let (x, y) = data(23, 40, n, p);
    let found = fit(&dense(&x, n), &dense(&y, p), None, &GaussianParams::new(0.15), None).unwrap();
    let facts = GaussianFacts {
        penalties: found.penalties,
        solver: "auto".into(),
        objective: found.objective,
        violation: found.violation,
        iterations: found.iterations,
        converged: found.converged,
        intercept: false,
        standardize: false,
        refit: false,
        samples: 40,
        data: "x → y".into(),
    };
    let names = |prefix: &str, count: usize| Some((0..count).map(|k| format!("{prefix}{k}")).collect());
    GaussianModel::new(&found, names("x", n), names("y", p), facts)
}

#[test]
fn models_come_back() {
    let model = model();
    let bytes = model.to_bytes();
    assert_eq!(GaussianModel::open(&bytes), Ok(model.clone()));
    assert_eq!(GaussianModel::open(&bytes).unwrap().to_bytes(), bytes);
    let nameless = GaussianModel { inputs: None, outputs: None, ..model };
    assert_eq!(GaussianModel::open(&nameless.to_bytes()), Ok(nameless));
    for len in 0..bytes.len() {
        assert!(GaussianModel::open(&bytes[..len]).is_err(), "{len}");
    }
}

/// Files whose checksum is right and whose content is not.
#[test]
fn nonsense_is_refused() {
    let bytes = model().to_bytes();
    let file = Container::open(&bytes).unwrap();
    let names = [*b"lidx", *b"lval", *b"tidx", *b"tval", *b"icpt"];
    let with = |name: [u8; 4], change: &dyn Fn(&mut Vec<u8>)| {
        let mut sections: Vec<_> = names.iter().map(|n| (*n, file.section(*n).unwrap().to_vec())).collect();
        sections.iter_mut().filter(|s| s.0 == name).for_each(|s| change(&mut s.1));
        let views: Vec<_> = sections.iter().map(|s| (s.0, s.1.as_slice())).collect();
        GaussianModel::open(&write(Kind::GAUSSIAN, &file.header, &views))
    };
    assert!(with(*b"none", &|_| ()).is_ok());
    let message = |result: Result<GaussianModel, ModelError>| result.unwrap_err().to_string();
    let indefinite = with(*b"lval", &|s| s[..8].copy_from_slice(&(-1f64).to_le_bytes()));
    assert!(message(indefinite).contains("not positive definite"));
    for (name, at, value) in [(*b"lidx", 0, 9u32), (*b"lidx", 4, 3), (*b"tidx", 0, 4), (*b"tidx", 4, 3)] {
        let broken = with(name, &|s| s[at..at + 4].copy_from_slice(&value.to_le_bytes()));
        assert!(message(broken).contains("do not fit together"));
    }
    for name in names {
        assert!(with(name, &|s| s.truncate(s.len() - 8)).is_err());
        assert!(with(name, &|s| s[..8].copy_from_slice(&f64::NAN.to_le_bytes())).is_err());
    }
    let mut header = file.header.clone();
    header["outputs"] = json!(1u64 << 40);
    let views: Vec<_> = names.iter().map(|n| (*n, file.section(*n).unwrap())).collect();
    assert!(GaussianModel::open(&write(Kind::GAUSSIAN, &header, &views)).is_err());
    let other = GaussianModel::open(&write(Kind::FIELD, &header, &views));
    assert!(matches!(other, Err(ModelError::Kind { .. })));
}
