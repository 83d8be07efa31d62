//! Variable-length integers, and values encoded with them.

/// Appends a number, 7 bits per byte.
pub fn put(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

pub fn put_signed(out: &mut Vec<u8>, value: i64) {
    put(out, ((value << 1) ^ (value >> 63)) as u64);
}

pub fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

pub fn put_list(out: &mut Vec<u8>, list: &[u64]) {
    put(out, list.len() as u64);
    list.iter().for_each(|value| put(out, *value));
}

pub fn put_signed_list(out: &mut Vec<u8>, list: &[i64]) {
    put(out, list.len() as u64);
    list.iter().for_each(|value| put_signed(out, *value));
}

/// Remaining input. Every method returns None at the end of the input or at an invalid value.
pub struct VarintReader<'a>(pub &'a [u8]);

impl VarintReader<'_> {
    pub fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    pub fn number(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return (shift < 63 || byte < 2).then_some(value);
            }
        }
        None
    }

    pub fn number32(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    pub fn signed(&mut self) -> Option<i64> {
        let value = self.number()?;
        Some((value >> 1) as i64 ^ -((value & 1) as i64))
    }

    /// Length of a list: every element has at least one byte, which limits the allocation for an invalid length.
    pub fn length(&mut self) -> Option<usize> {
        usize::try_from(self.number()?).ok().filter(|n| *n <= self.0.len())
    }

    pub fn text(&mut self) -> Option<String> {
        let (text, rest) = { self.length().map(|n| self.0.split_at(n)) }?;
        self.0 = rest;
        String::from_utf8(text.to_vec()).ok()
    }

    pub fn sequence<T>(&mut self, one: impl Fn(&mut Self) -> Option<T>) -> Option<Vec<T>> {
        let length = self.length()?;
        (0..length).map(|_| one(self)).collect()
    }

    pub fn list(&mut self) -> Option<Vec<u64>> {
        self.sequence(Self::number)
    }

    pub fn signed_list(&mut self) -> Option<Vec<i64>> {
        self.sequence(Self::signed)
    }

    /// Returns the value if no input remains.
    pub fn finish<T>(&self, value: T) -> Option<T> {
        self.0.is_empty().then_some(value)
    }
}
