//! A worksheet in the format of Excel 2 (BIFF2), as `IOzone`'s -b writes it: labels and numbers.
//!
//! Record layouts are those of files that version 3.489 wrote, checked byte by byte in tests. Left
//! out: fonts, formats, columns' widths; the original writes none.

use super::report::{Cell, Value};

const BOF: u16 = 9;
const EOF: u16 = 10;
const LABEL: u16 = 4;
const NUMBER: u16 = 3;
/// BIFF version 2; document type worksheet.
const BOF_DATA: [u8; 4] = [2, 0, 0x10, 0];
/// Row, column and three bytes of attributes.
const HEAD_BYTES: usize = 7;
/// The text area of a label has a fixed size.
const TEXT_BYTES: usize = 256;
/// A longer text is cut to this.
const TEXT_MAX: usize = 254;

/// The file.
pub fn worksheet(cells: &[Cell]) -> Vec<u8> {
    let mut file = Vec::new();
    record(&mut file, BOF, &BOF_DATA);
    for (row, column, value) in cells {
        let mut data = Vec::with_capacity(HEAD_BYTES + 1 + TEXT_BYTES);
        data.extend(row.to_le_bytes());
        data.extend(column.to_le_bytes());
        data.extend([0; 3]);
        match value {
            Value::Text(text) => {
                data.push(text.len() as u8);
                let cut = if text.len() > TEXT_MAX + 1 { TEXT_MAX } else { text.len() };
                data.extend(&text.as_bytes()[..cut]);
                data.resize(HEAD_BYTES + 1 + TEXT_BYTES, 0);
                record(&mut file, LABEL, &data);
            }
            Value::Number(number) => {
                data.extend(number.to_le_bytes());
                record(&mut file, NUMBER, &data);
            }
        }
    }
    record(&mut file, EOF, &[]);
    file
}

fn record(file: &mut Vec<u8>, code: u16, data: &[u8]) {
    file.extend(code.to_le_bytes());
    file.extend((data.len() as u16).to_le_bytes());
    file.extend(data);
}
