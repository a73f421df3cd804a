"""Contains the cases of faults_test.py. Each file has the cases that disturb one thing."""
