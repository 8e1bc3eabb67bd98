"""Data of the paper's and the real experiments: loaders, downloads, problems, contexts."""
