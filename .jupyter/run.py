# `make notebooks`: execute in place, then keep only the metadata that the course uses.
c = get_config()  # noqa: F821
c.NotebookExporter.preprocessors = [
    f"nbconvert.preprocessors.{step}Preprocessor"
    for step in ("Execute", "CoalesceStreams", "ClearMetadata")
]
c.ExecutePreprocessor.kernel_name = "python3"
c.ExecutePreprocessor.record_timing = False
keep = {"tags", "slideshow", "nbgrader", ("jupyter", "source_hidden")}
c.ClearMetadataPreprocessor.preserve_cell_metadata_mask = keep
keep = {"kernelspec", ("language_info", "name")}
c.ClearMetadataPreprocessor.preserve_nb_metadata_mask = keep
