//! Sections that several kinds of models have: names, the parameter index, the weights.

use super::container::{Container, ModelError};
use super::varint::{self, Reader};
use crate::data::sequences::Dictionary;
use crate::features::Index;

/// Names: how many, the length of each, then their bytes.
pub(super) fn names(dictionary: &Dictionary) -> Vec<u8> {
    let mut out = Vec::new();
    varint::write(&mut out, dictionary.len() as u64);
    dictionary.iter().for_each(|name| varint::write(&mut out, name.len() as u64));
    out.extend_from_slice(dictionary.parts().0);
    out
}

/// As [`names`] wrote them.
pub(super) fn read_names(bytes: &[u8]) -> Result<Dictionary, ModelError> {
    let mut reader = Reader(bytes);
    let count = reader.next()? as usize;
    if count > bytes.len() {
        return Err(ModelError::Truncated);
    }
    let mut end = 0u64;
    let ends: Result<Vec<u64>, ModelError> = (0..count)
        .map(|_| {
            end += u64::from(reader.next()?);
            Ok(end)
        })
        .collect();
    Dictionary::from_parts(reader.0.to_vec(), ends?).map_err(|e| ModelError::Content(e.to_string()))
}

/// A parameter index; how it is laid out stands in `sequence.rs`.
pub(super) fn write_index(index: &Index) -> Vec<u8> {
    let mut out = Vec::new();
    let mut put = |n: u64| varint::write(&mut out, n);
    put(index.templates() as u64);
    for template in 0..index.templates() {
        let attributes = index.attributes(template) as u32;
        let dense = attributes > 0 && index.configurations(template, 0).is_none();
        put(u64::from(dense));
        put(index.arities(template).len() as u64);
        index.arities(template).iter().for_each(|&a| put(a.into()));
        put(attributes.into());
        if dense {
            continue;
        }
        for a in 0..attributes {
            put(index.parameters(template, a).len() as u64);
        }
        for a in 0..attributes {
            let mut last = 0;
            for &c in index.configurations(template, a).unwrap_or(&[]) {
                put(u64::from(c - last));
                last = c;
            }
        }
    }
    out
}

/// As [`write_index`] wrote it.
pub(super) fn read_index(bytes: &[u8]) -> Result<Index, ModelError> {
    let mut reader = Reader(bytes);
    let mut index = Index::new();
    for _ in 0..reader.next()? {
        let dense = reader.next()? == 1;
        let outputs = reader.next()?;
        let arities: Vec<u32> = (0..outputs.min(8)).map(|_| reader.next()).collect::<Result<_, _>>()?;
        let attributes = reader.next()?;
        let bad = |e: crate::features::IndexError| ModelError::Content(e.to_string());
        if dense {
            index.push_dense(&arities, attributes).map_err(bad)?;
            continue;
        }
        if attributes as usize > bytes.len() {
            return Err(ModelError::Truncated);
        }
        let mut starts = Vec::with_capacity(attributes as usize + 1);
        let mut end = 0u32;
        starts.push(end);
        for _ in 0..attributes {
            // Each configuration takes a byte at least.
            let next = end.checked_add(reader.next()?).filter(|&end| end as usize <= bytes.len());
            end = next.ok_or(ModelError::Truncated)?;
            starts.push(end);
        }
        let mut configurations: Vec<u32> = Vec::with_capacity(end as usize);
        for list in starts.windows(2) {
            let mut last = 0u32;
            for k in list[0]..list[1] {
                let step = reader.next()?;
                let next = last.checked_add(step).filter(|_| k == list[0] || step > 0);
                last = next.ok_or_else(|| ModelError::Content("configurations do not ascend".into()))?;
                configurations.push(last);
            }
        }
        index.push_flat(&arities, starts, configurations).map_err(bad)?;
    }
    if !reader.0.is_empty() {
        return Err(ModelError::Content("the index is longer than it says".into()));
    }
    Ok(index)
}

/// The weights of an index: one for each parameter, all finite.
pub(super) fn read_weights(file: &Container<'_>, index: &Index) -> Result<Vec<f64>, ModelError> {
    let weights = file.numbers(*b"wght", f64::from_le_bytes)?;
    if weights.len() != index.len() || !weights.iter().all(|w| w.is_finite()) {
        return Err(ModelError::unfit());
    }
    Ok(weights)
}
