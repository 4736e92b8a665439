"""The tests; a package, so that the scripted judge can be imported and run by itself."""
