"""nbval re-executes every notebook and compares all outputs but these."""


def pytest_collectstart(collector):
    if collector.path.suffix == ".ipynb":
        collector.skip_compare += ("stderr", "text/html")
