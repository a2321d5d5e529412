// Until the first room of spec/ has a source file.
