//! Quantiles of stored histograms.

use iolab_model::Histogram;
use pyo3::prelude::*;

use crate::error::study_error;

/// Quantiles (0..=1) of a histogram in its JSON form, in nanoseconds, interpolated between values;
/// an empty one gives an empty list.
#[pyfunction]
pub fn histogram_quantiles(
    py: Python<'_>,
    histogram_json: &str,
    quantiles: Vec<f64>,
) -> PyResult<Vec<f64>> {
    let histogram: Histogram =
        serde_json::from_str(histogram_json).map_err(|e| study_error(py, e))?;
    Ok(quantiles.iter().filter_map(|&quantile| histogram.interpolated(quantile)).collect())
}
