package main

import "github.com/spf13/cobra"

func (c *cli) rulesCommand() *cobra.Command { return &cobra.Command{Use: "rules"} }
