//! Packed files, made without a packer: blocks are stored as they are.

/// A gzip file with stored blocks only.
pub fn gzip(text: &[u8]) -> Vec<u8> {
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255];
    let mut blocks = text.chunks(60_000).peekable();
    while let Some(block) = blocks.next() {
        file.push(u8::from(blocks.peek().is_none()));
        let len = block.len() as u16;
        file.extend(len.to_le_bytes());
        file.extend((!len).to_le_bytes());
        file.extend(block);
    }
    let crc = !text.iter().fold(!0u32, |crc, b| {
        (0..8).fold(crc ^ u32::from(*b), |crc, _| (crc >> 1) ^ (0xedb8_8320 & 0u32.wrapping_sub(crc & 1)))
    });
    file.extend(crc.to_le_bytes());
    file.extend((text.len() as u32).to_le_bytes());
    file
}

/// A zstd file with raw blocks only.
pub fn zstd(text: &[u8]) -> Vec<u8> {
    let mut file = vec![0x28, 0xb5, 0x2f, 0xfd, 0, 0x58];
    let mut blocks = text.chunks(100_000).peekable();
    while let Some(block) = blocks.next() {
        let header = (block.len() as u32) << 3 | u32::from(blocks.peek().is_none());
        file.extend(&header.to_le_bytes()[..3]);
        file.extend(block);
    }
    file
}
